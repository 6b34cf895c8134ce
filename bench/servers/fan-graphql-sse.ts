/** Serves the streams of the fan-out suite with graphql-sse over node:http, a peer of the relay. */
import { createHandler } from 'graphql-sse/lib/use/http';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';
import { publishes } from './fan-publish.ts';
import { fanSchema } from './fan-schema.ts';

export async function start(): Promise<Started> {
  const { schema, publish } = fanSchema();
  const handler = createHandler({ schema });
  return {
    port: await listen((request, response) => {
      if (!publishes(request, response, publish)) void handler(request, response);
    }),
  };
}
