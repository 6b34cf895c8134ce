/** Uses the built client libraries in a test page, on request of the test. */
import { createRuntime } from '/runtime.js';
import { createLinkCaller } from '/caller.js';

/**
 * Connects the client `tab` with the action `title.set`. Resolves with the first state of its link after `connecting`.
 */
window.startClient = async (url, token) => {
  const runtime = createRuntime({ url, token, clientId: 'tab', clientType: 'browser', instanceId: 'tab-1' });
  const schema = { type: 'object', required: ['text'], properties: { text: { type: 'string', maxLength: 9 } } };
  runtime.handle('title.set', { schema }, ({ text }) => {
    const was = document.title;
    document.title = text;
    return { was, is: document.title };
  });
  const settled = new Promise((resolve) => {
    runtime.onStatus(({ state }) => state !== 'connecting' && resolve(state));
  });
  runtime.connect();
  return settled;
};

/** Invokes `title.set` of the client `tab` with this text, and resolves with the outcome. */
window.setTitle = async (url, token, text) => {
  const caller = createLinkCaller({ url, token });
  const invocation = await caller.invoke({ userId: 'alice', clientId: 'tab', action: 'title.set' }, { text });
  await caller.close();
  return invocation.outcome;
};
