/** A process in which the path `/burn?<ms>` uses that much CPU time, so that the cost mode has something to find. */
import { createServer } from 'node:http';
import { z } from 'zod';
import { serveActs } from '../../../faults/lib/acts.ts';
import { createCostProbe, threadMicros } from '../../../faults/lib/cost-probe.ts';

const probe = createCostProbe();
const server = createServer((request, response) => {
  const { pathname, search } = new URL(request.url ?? '/', 'http://here');
  const from = threadMicros();
  const ms = pathname === '/burn' ? Number(search.slice(1)) : 0;
  while (threadMicros() - from < ms * 1000);
  response.end('done');
});
server.listen(0, '127.0.0.1', () =>
  serveActs({
    at: () => server.address(),
    costBegin() {
      probe.begin();
      return null;
    },
    costEnd: (given) => probe.end(z.object({ withinMs: z.number() }).parse(given).withinMs),
  }),
);
