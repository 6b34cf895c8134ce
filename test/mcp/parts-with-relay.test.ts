/** Tests that a result which is too large for an answer is read in parts, with nothing left out. */
import { expect, it } from 'vitest';
import { AGENT_RESULT_CHARS } from '../../src/core/limits.ts';
import { callTool, textOf } from './kit/agents.ts';
import { startTestRelay } from '../relay/kit/test-relay.ts';

/** Each character of these texts is a pair of surrogates, the first of which is on a boundary between two parts. */
const TEXT = `x${'😀'.repeat(AGENT_RESULT_CHARS / 2 + 10_000)}`;
const WHERE =
  /These are the characters (\d+) to (\d+) of (\d+)\.(?: To read on, call get_command with .* from (\d+)\.)?$/;

it.each([
  ['a text', TEXT, TEXT],
  ['an object', { text: TEXT }, JSON.stringify({ text: TEXT })],
])('%s is read on by get_command with `from`, as its answer says', async (_, value, whole) => {
  await using relay = await startTestRelay({ mcp: 'on' });
  const tab = await relay.client();
  const at = { url: relay.url, token: await relay.token('alice:invoke') };
  const answer = callTool(at, 'open');
  const { command_id } = await tab.next('command');
  tab.send({ type: 'result', command_id }, value);
  let read = '';
  let { result } = await answer;
  for (let from: number | null = 0; from !== null;) {
    expect(result.structuredContent).toBeUndefined();
    const [part, where] = result.content.map(({ text }: { readonly text: string }) => text);
    const [, first, to, length, next] = WHERE.exec(where) ?? [];
    expect([first, to, length]).toEqual([String(from), String(from + part.length), String(whole.length)]);
    expect(part.length).toBeLessThanOrEqual(AGENT_RESULT_CHARS);
    expect(part.isWellFormed()).toBe(true);
    read += part;
    from = next === undefined ? null : Number(next);
    if (from !== null) ({ result } = await callTool(at, 'get_command', { command_id, client: 'tab', from }));
  }
  expect(read === whole).toBe(true);

  const shown = await callTool(at, 'get_command', { command_id });
  expect(shown.result.structuredContent).toMatchObject({ result: expect.stringContaining('pass from') });
  const beyond = await callTool(at, 'get_command', { command_id, from: whole.length });
  expect(textOf(beyond.result)).toContain(`from: the result has ${whole.length} characters`);
  for (const from of [-1, 1.5, 'all']) {
    const refused = await callTool(at, 'get_command', { command_id, from });
    expect(textOf(refused.result)).toMatch(/^invalid_argument: from: /);
  }
});
