/** Defines the actions of the demo's phone, and the decisions of the person who holds it. */
import type { Action, ActionRequest, Params, Verdict } from '../../clients/runtime/index.ts';
import { roughly, type Pause } from '../pause.ts';

/** The actions of alice's phone. */
export const PHONE_ACTIONS: readonly Action[] = [
  {
    name: 'location.read',
    summary: 'The location of the phone.',
    version: '1.4.0',
    schema: {
      type: 'object',
      properties: { accuracy: { enum: ['coarse', 'fine'] } },
      additionalProperties: false,
    },
    run: ({ accuracy }) => position(accuracy === 'fine' ? 5 : 2),
  },
  {
    name: 'photo.take',
    summary: 'Takes a photo after the approval of the person who holds the phone.',
    version: '1.0.2',
    schema: {
      type: 'object',
      properties: { subject: { type: 'string', minLength: 1, maxLength: 40 } },
      required: ['subject'],
      additionalProperties: false,
    },
    approval: true,
    metadata: { camera: 'rear', format: 'image/svg+xml' },
    run: photo,
  },
];

/**
 * Returns a function that decides like the person who holds the phone: after a moment, and against every third photo.
 */
export function createHolder(pause: Pause): (request: ActionRequest) => Promise<Verdict> {
  let requests = 0;
  return async ({ signal }) => {
    requests++;
    await pause(roughly(700), signal);
    return requests % 3 === 0 ? { allow: false, message: 'Not now, please.' } : true;
  };
}

/** Returns a position in a park. The position moves slowly with time. */
function position(digits: number) {
  const round = (degrees: number): number => Number(degrees.toFixed(digits));
  const turn = Date.now() / 600_000;
  return {
    latitude: round(52.5145 + Math.sin(turn) / 500),
    longitude: round(13.3501 + Math.cos(turn) / 300),
    at: new Date().toISOString(),
  };
}

function photo({ subject }: Params) {
  const hue = Math.floor(Math.random() * 360);
  const text = String(subject).replaceAll(/[^\p{L}\p{N} ]/gu, '');
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 90"><rect width="160" height="90" fill="hsl(${hue} 60% 70%)"/>` +
    `<text x="80" y="50" text-anchor="middle" font-family="sans-serif">${text}</text></svg>`;
  return { taken_at: new Date().toISOString(), type: 'image/svg+xml', image: svg };
}
