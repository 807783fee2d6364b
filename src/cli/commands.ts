/** The command objects of `completion`, `man`: flags, help and what they do. */
import { BASE_EXITS } from '../plan/options/verb-spec.js';
import { defineVerb } from '../run/verb/verb.js';

export const completionVerb = defineVerb({
  name: 'completion',
  operand: '[shell]',
  choices: ['bash', 'zsh', 'fish'],
  doc: 'print a completion script for bash, zsh or fish',
  exits: { 0: 'done', 2: BASE_EXITS[2] },
  examples: [
    'cryptodl completion bash > ~/.local/share/bash-completion/completions/cryptodl',
    'cryptodl completion zsh > "${fpath[1]}/_cryptodl"',
    'cryptodl completion fish > ~/.config/fish/completions/cryptodl.fish',
  ],
  aka: ['completions'],
  flags: [],
  actOffline: async (command) => (await import('./completion.js')).completion(command),
});

export const manVerb = defineVerb({
  name: 'man',
  doc: 'print the man page cryptodl(1); it has all commands and flags',
  exits: { 0: 'done', 2: BASE_EXITS[2] },
  examples: [
    'cryptodl man | man -l -',
    'cryptodl man > ~/.local/share/man/man1/cryptodl.1',
    'cryptodl man | groff -man -Tpdf > cryptodl.pdf',
  ],
  aka: ['manual', 'manpage'],
  flags: [],
  actOffline: async (command) => (await import('./help.js')).man(command),
});
