/** Serves the streams of the fan-out suite with graphql-yoga's own event streams, a peer of the relay. */
import { createYoga } from 'graphql-yoga';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';
import { publishes } from './fan-publish.ts';
import { fanSchema } from './fan-schema.ts';

export async function start(): Promise<Started> {
  const { schema, publish } = fanSchema();
  const yoga = createYoga({ schema, logging: false });
  return {
    port: await listen((request, response) => {
      if (!publishes(request, response, publish)) void yoga(request, response);
    }),
  };
}
