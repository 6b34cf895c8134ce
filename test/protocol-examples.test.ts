/** Tests that the relay and its clients can read the example frames of PROTOCOL.md. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isFault, parseDown, parseUp } from '../src/protocol/frame-codec.ts';
import { DOWN, UP } from '../src/protocol/frames.ts';

const text = readFileSync(join(import.meta.dirname, '../PROTOCOL.md'), 'utf8');

/** The example frames of the page. Each begins with a header; the lines up to the next header are its payload. */
const frames = [...text.matchAll(/^```\n(\{"type"[\s\S]*?)\n```$/gm)].flatMap(([, block = '']) =>
  block.split(/\n(?=\{"type")/),
);

test.each(frames)('%s', (frame) => {
  const { type } = JSON.parse(frame.split('\n')[0] ?? '');
  const known = { up: Object.hasOwn(UP, type), down: Object.hasOwn(DOWN, type) };
  expect(known.up || known.down).toBe(true);
  // A type such as `cancel` is sent in both directions, with different members. One parser must accept the frame.
  const up = known.up ? parseUp(frame) : null;
  const isRead = (up !== null && !isFault(up)) || (known.down && parseDown(frame) !== null);
  expect(isRead, JSON.stringify(up)).toBe(true);
});

test('each type of frame has an example', () => {
  const shown = new Set(frames.map((frame) => JSON.parse(frame.split('\n')[0] ?? '').type));
  expect([...Object.keys(UP), ...Object.keys(DOWN)].filter((type) => !shown.has(type))).toEqual([]);
});
