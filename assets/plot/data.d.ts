/** The data of a plot as `src/verbs/plot/chart.ts` writes it. */
type PlotBar = [
  from: number,
  to: number,
  open: number,
  high: number,
  low: number,
  close: number,
  volume: number,
];
interface Plot {
  kind: 'candles' | 'line';
  title: string;
  subtitle: string[];
  figures: string[];
  notes: string[];
  hasVolume: boolean;
  bars: PlotBar[];
  breaks: number[];
}
