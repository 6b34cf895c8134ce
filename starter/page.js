// A client in a browser. It asks the person in front of it before it shows a message.
import { createRuntime } from '/relay/clients/runtime.js';

const dialog = document.querySelector('dialog');
for (const button of dialog.querySelectorAll('button')) button.onclick = () => dialog.close(button.value);

/** Asks the person. Resolves with `allow`, or with another text if the person refuses or nobody waits any more. */
function ask(question, signal) {
  document.querySelector('#question').textContent = question;
  dialog.returnValue = '';
  dialog.showModal();
  signal.addEventListener('abort', () => dialog.close('refuse'), { once: true });
  return new Promise((done) => dialog.addEventListener('close', () => done(dialog.returnValue), { once: true }));
}

const runtime = createRuntime({
  url: `${location.origin.replace('http', 'ws')}/relay/connect`,
  token: async () => (await fetch('/token')).text(),
  clientId: 'page-1',
  clientType: 'browser',
  approve: async ({ params, signal }) => {
    const answer = await ask(`Show "${params.text}"?`, signal);
    return { allow: answer === 'allow', message: 'The person at the page did not agree.' };
  },
  onStatus: ({ state }) => (document.querySelector('#status').textContent = state),
});

runtime.handle(
  'message.show',
  {
    summary: 'Shows a message on the page',
    approval: true,
    lease: true,
    schema: { type: 'object', required: ['text'], properties: { text: { type: 'string', maxLength: 200 } } },
  },
  ({ text }) => {
    const item = document.createElement('li');
    item.textContent = text;
    document.querySelector('#messages').append(item);
    return { shown: true };
  },
);

runtime.connect();
