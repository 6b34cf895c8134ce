/** Runs a client in a test page that is hidden, frozen and shown again. */
import { createRuntime, newClientId } from '/runtime.js';

window.clientId = newClientId({ perTab: true });
window.states = [];

/**
 * A clock whose timers of 100 milliseconds and more never fire. So what happens, happens because of an event of the
 * page.
 */
const eventsOnly = {
  now: () => Date.now(),
  after(ms, run) {
    if (ms >= 100) return () => {};
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Starts a client, and collects its states. */
window.startClient = (url, token) => {
  const runtime = createRuntime({
    url,
    token,
    clientId: 'tab',
    clientType: 'browser',
    clock: eventsOnly,
    random: () => 0.999,
  });
  runtime.onStatus((status) => window.states.push(status.reason ?? status.state));
  runtime.connect();
};
