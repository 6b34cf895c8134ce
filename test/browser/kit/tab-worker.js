/** The client of all tabs of a browser: a shared worker with one runtime, in which each tab is a context. */
import { createRuntime } from '/runtime.js';

/** The tabs that are open, by their context: the port, and the document. */
const tabs = new Map();
/** Which document had each context first. */
const lives = [];
/** What ran: the number of the command, and the document. */
const runs = [];
const running = new Map();
let runtime = null;

const context = (contextId) => ({ contextId, status: 'active', ownership: 'user-owned' });

function mark({ n, ms }, { contextId }) {
  const tab = tabs.get(contextId);
  if (!tab) throw new Error('The worker has no such tab.');
  return new Promise((resolve, reject) => {
    running.set(n, { contextId, resolve, reject });
    tab.port.postMessage({ n, ms });
  });
}

function join(contextId, page, port) {
  tabs.set(contextId, { port, page });
  if (!lives.some((life) => life.contextId === contextId)) lives.push({ contextId, page });
  runtime?.reportContexts({ set: [context(contextId)] });
  // The tab holds this lock for as long as its document lives, whatever ends it.
  void navigator.locks.request(contextId, () => leave(contextId, page));
}

function leave(contextId, page) {
  if (tabs.get(contextId)?.page !== page) return;
  tabs.delete(contextId);
  runtime?.reportContexts({ removed: [contextId] });
  for (const [n, run] of running) {
    if (run.contextId !== contextId) continue;
    running.delete(n);
    run.reject(new Error('The tab is gone.'));
  }
}

const ANSWERS = {
  isJoined: (contextId) => tabs.has(contextId),
  seen: () => ({ lives, runs, open: [...tabs.keys()] }),
  async start(url, token) {
    runtime = createRuntime({ url, token, clientId: 'browser', clientType: 'browser', places: true });
    runtime.handle('tab.mark', {}, mark);
    runtime.reportContexts([...tabs.keys()].map(context));
    runtime.connect();
    await runtime.ready();
  },
};

onconnect = ({ ports: [port] }) => {
  port.onmessage = async ({ data }) => {
    if ('join' in data) join(data.join, data.page, port);
    else if ('began' in data) runs.push({ n: data.began, page: data.page });
    else if ('ended' in data) {
      running.get(data.ended)?.resolve({ page: data.page });
      running.delete(data.ended);
    } else port.postMessage({ answer: data.number, value: await ANSWERS[data.ask](...data.args) });
  };
};
