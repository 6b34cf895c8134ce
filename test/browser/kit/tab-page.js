/**
 * A tab of a client whose runtime is in a shared worker. It keeps the id of its context in the session's storage: so a
 * reload comes back under the same id, and a duplicated tab begins with the id of the first one.
 */
import { newContextId } from '/runtime.js';

/** Names this document: no other document has this name, after a reload neither. */
const page = crypto.randomUUID();
const { port } = new SharedWorker('/tab-worker.js', { type: 'module' });

/** Holds the lock with the name of the context until the document is gone. False if another document holds it. */
function hold(contextId) {
  return new Promise((held) => {
    void navigator.locks.request(contextId, { ifAvailable: true }, (lock) => {
      held(lock !== null);
      return lock && new Promise(() => {});
    });
  });
}

let contextId = sessionStorage.getItem('context') ?? newContextId();
if (!(await hold(contextId))) {
  contextId = newContextId();
  await hold(contextId);
}
sessionStorage.setItem('context', contextId);

const answers = new Map();
port.onmessage = async ({ data }) => {
  if ('answer' in data) return answers.get(data.answer)?.(data.value);
  port.postMessage({ began: data.n, page });
  await new Promise((done) => setTimeout(done, data.ms));
  port.postMessage({ ended: data.n, page });
};
port.postMessage({ join: contextId, page });

/** Asks the worker, and resolves with its answer. */
window.ask = (question, ...args) =>
  new Promise((resolve) => {
    const number = answers.size;
    answers.set(number, resolve);
    port.postMessage({ ask: question, args, number });
  });
window.joined = await window.ask('isJoined', contextId);
