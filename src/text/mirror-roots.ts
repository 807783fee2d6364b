/**
 * The local folders that mirror lakes in buckets, with the addresses of these lakes. Text for people and programs shows the address in
 * place of the folder. The table belongs to the process, because text is made far from the place that knows the mirror.
 */

/** By root. */
const addresses = new Map<string, string>();

/** Shows `address` in place of the folder `root`, until the returned function is called. */
export function showAs(root: string, address: string): () => void {
  addresses.set(root, address);
  return () => addresses.delete(root);
}

export function withAddresses(text: string): string {
  let shown = text;
  for (const [root, address] of addresses) shown = shown.replaceAll(root, address);
  return shown;
}
