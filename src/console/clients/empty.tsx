/** Shows how to start a client, when the relay has none. */
import { relayUrl } from '../base.ts';
import { viewer } from '../shell/facts.tsx';
import { Empty } from '../ui/empty.tsx';
import { CopyLine } from '../ui/id.tsx';

export function NoClients() {
  const user = viewer.value?.userId ?? 'alice';
  return (
    <Empty title="No client is connected yet">
      <p>Start the demo, or connect a client of your own with a user’s token.</p>
      <CopyLine text="npm run demo" />
      <CopyLine text={`callboard token --user ${user}`} />
      <CopyLine text={programText(relayUrl().replace(/^http/, 'ws'))} />
    </Empty>
  );
}

function programText(url: string): string {
  return `import { createRuntime } from 'callboard/runtime';

const runtime = createRuntime({
  url: '${url}/connect',
  token: TOKEN, // what the command above prints
  clientId: 'kiosk-1',
  clientType: 'console',
});
runtime.handle('notes.add', { summary: 'Adds a note' }, ({ text }) => ({ added: text }));
runtime.connect();`;
}
