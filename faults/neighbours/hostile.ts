/** Runs one attack of the hostile user in a process. Arguments: the site as JSON, and the name of the attack. */
import { setMaxListeners } from 'node:events';
import { setPriority } from 'node:os';
import { serveActs } from '../lib/acts.ts';
import { attackOf } from './attacks/attacks.ts';
import { SITE } from './site.ts';

/** The niceness of hostile processes. The relay and the honest user get the CPU before them. */
const HOSTILE_NICE = 15;
// The attack has a lower priority, so that it loads the relay rather than the cores on which the honest user is
// measured.
setPriority(HOSTILE_NICE);
const site = SITE.parse(JSON.parse(process.argv[2] ?? ''));
const attack = attackOf(process.argv[3] ?? '');
const operations: Record<string, number> = {};
const over = new AbortController();
setMaxListeners(0, over.signal);
// Counted, because the relay may close an attacker's sockets at any time.
process.on('uncaughtException', () => (operations['broken'] = (operations['broken'] ?? 0) + 1));
process.on('unhandledRejection', () => (operations['broken'] = (operations['broken'] ?? 0) + 1));

serveActs({
  async begin() {
    const count = (name: string, by = 1): void => void (operations[name] = (operations[name] ?? 0) + by);
    const context = { site, signal: over.signal, count };
    await attack.prepare?.(context);
    void attack.run(context);
    return null;
  },
  /** Ends the attack and returns its operation counts. Its resources are held until the process ends. */
  end() {
    over.abort();
    return operations;
  },
});
