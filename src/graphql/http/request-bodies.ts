/** Reads bodies of GraphQL requests, with a cache for bodies with equal bytes. */
import { BoundedMap } from '../../core/bounded-map.ts';
import { readRequestBody, type RefuseBody } from './request.ts';

/** The most bodies that are cached, and the most bytes of one. Dashboards send the same few bodies again and again. */
const BODIES = { most: 500, longest: 4096 };

/**
 * Creates a function that reads a request body as `readRequestBody` does. The function throws what `decode` and `refuse`
 * throw. It does not read a short body again that was received before, because that is a sixth of the cost of a small
 * query.
 */
export function createBodyReader(decode: (bytes: Buffer) => string, refuse: RefuseBody): (bytes: Buffer) => unknown {
  const bodies = new BoundedMap<string, object>({ most: BODIES.most, order: 'used' });
  return (bytes) => {
    if (bytes.length > BODIES.longest) return readRequestBody(decode(bytes), refuse);
    const text = bytes.toString('latin1');
    const known = bodies.get(text);
    if (known) return known;
    const body = readRequestBody(decode(bytes), refuse);
    if (typeof body === 'object' && body !== null) bodies.set(text, Object.freeze(body));
    return body;
  };
}
