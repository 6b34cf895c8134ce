/** A client: a program that can do something, and says so. Here it keeps notes. */
import { createRuntime } from 'callboard/runtime';

const { APP = 'http://127.0.0.1:4400' } = process.env;
const notes = new Set();

const runtime = createRuntime({
  url: `${APP.replace('http', 'ws')}/relay/connect`,
  token: async () => (await fetch(`${APP}/token`)).text(),
  clientId: 'desk-1',
  clientType: 'console',
  onStatus: (status) => console.log(status.state, 'message' in status ? status.message : ''),
});

runtime.handle(
  'notes.add',
  { summary: 'Adds a note', schema: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } } },
  ({ text }) => {
    notes.add(text);
    console.log('note:', text);
    return { count: notes.size };
  },
);

runtime.connect();
process.once('SIGINT', () => void runtime.close());
