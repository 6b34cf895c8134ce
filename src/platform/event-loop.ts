/** Implements core's EventLoop with Node's. */
import type { EventLoop } from '../core/event-loop.ts';

export const systemLoop: EventLoop = { afterOthers: (run) => void setImmediate(run) };
