/** Holds the promises that `ready()` returns until the link is up, or closed permanently. */
import { LinkClosedError, type LinkStatus, type Welcome } from '../link/status.ts';

type Waiting = { resolve(welcome: Welcome): void; reject(error: LinkClosedError): void };

export class Readiness {
  readonly #waiting = new Set<Waiting>();

  /** Resolves when the link is up, at once if it is. Rejects with LinkClosedError when it is closed permanently. */
  wait(status: LinkStatus): Promise<Welcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.add({ resolve, reject });
      this.changed(status);
    });
  }

  changed(status: LinkStatus): void {
    if (status.state !== 'connected' && status.state !== 'closed') return;
    for (const { resolve, reject } of this.#waiting) {
      if (status.state === 'connected') resolve(status.welcome);
      else reject(new LinkClosedError(status.reason));
    }
    this.#waiting.clear();
  }
}
