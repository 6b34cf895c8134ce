/** Draws the icons of the console as lines on a grid of 16. */

const PATHS = {
  overview: 'M2.5 13.5v-5m3.7 5v-11m3.6 11v-7m3.7 7v-4',
  calls: 'M2.5 5.5h10m-3-3 3 3-3 3M13.5 11h-10m3-2.5L3.5 11l3 2.5',
  waits: 'M8 4.5V8l2.3 1.4M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Z',
  clients: 'M2 3.5h12v7.5H2zM6 13.5h4',
  actions: 'M9 1.8 3.5 9h4L7 14.2 12.5 7h-4z',
  history: 'M2.5 4h11m-11 4h11m-11 4h7',
  places: 'M2 3h12v10H2zM2 6h12M4.2 4.5h.01',
  users: 'M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8Zm-5 5.5c.5-2.4 2.4-3.7 5-3.7s4.5 1.3 5 3.7',
  devices: 'M4.5 1.8h7v12.4h-7zM7 12h2',
  revocations: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM3.8 12.2l8.4-8.4',
  sites:
    'M8 9.2a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4ZM5.3 10.7a3.8 3.8 0 0 1 0-5.4m5.4 0a3.8 3.8 0 0 1 0 5.4M3.2 12.8a6.8 6.8 0 0 1 0-9.6m9.6 0a6.8 6.8 0 0 1 0 9.6',
  nodes: 'M2.5 2.5h11v4.5h-11zm0 6.5h11v4.5h-11zM5 4.75h.01M5 11.25h.01',
  capacity: 'M2.5 12a6 6 0 1 1 11 0M8 9.5l2.5-3.5',
  dedup: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3M7.8 9.5h3.4',
  audit: 'M3.5 2h6l3 3v9h-9zM9.5 2v3h3M5.5 8.5h5m-5 2.5h3',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2 3.2 3.2',
  close: 'm4 4 8 8m0-8-8 8',
  plus: 'M8 3v10M3 8h10',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  down: 'm4 6.5 4 4 4-4',
  up: 'm4 9.5 4-4 4 4',
  menu: 'M2.5 4.5h11m-11 3.5h11m-11 3.5h11',
  sun: 'M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm0-9v1.2m0 10.6v1.2M1.5 8h1.2m10.6 0h1.2M3.4 3.4l.9.9m7.4 7.4.9.9m0-9.2-.9.9m-7.4 7.4-.9.9',
  moon: 'M13.3 9.5A5.7 5.7 0 0 1 6.5 2.7a5.7 5.7 0 1 0 6.8 6.8Z',
  system: 'M2 3h12v8H2zM5.5 13.5h5',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Zm0-6.5V11m0-5.6h.01',
  cut: 'M2.5 4h11m-11 4h11M2.5 12h2.2m2.2 0h2.2m2.2 0h2.2',
  warn: 'M8 2.3 14.2 13H1.8zM8 6.5v3m0 1.7h.01',
  eye: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6Z',
  pause: 'M5.5 3.5v9m5-9v9',
  play: 'M5 3.2v9.6L12.5 8z',
  key: 'M10 9.5A3.5 3.5 0 1 0 6.6 7L2 11.6V14h2.4v-1.7h1.7v-1.7h1.5',
  done: 'm3 8.5 3.2 3.2L13 4.5',
  link: 'M6.8 9.2l2.4-2.4M7.2 4.8l1.6-1.6a2.8 2.8 0 0 1 4 4l-1.6 1.6m-2.4 2.4-1.6 1.6a2.8 2.8 0 0 1-4-4l1.6-1.6',
  exit: 'M6 2.5H2.5v11H6M10 5l3 3-3 3m3-3H6',
} as const;

export type IconName = keyof typeof PATHS;

/** Draws an icon, which is hidden from screen readers: a word beside it or the label of its button says the same. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="i" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
