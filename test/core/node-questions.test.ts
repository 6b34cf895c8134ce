/** Tests the answers of a node to the questions of other nodes. */
import { expect, it } from 'vitest';
import type { Backend } from '../../src/core/backend.ts';
import { NodeQuestions } from '../../src/core/commands/node-questions.ts';
import type { MailboxRow } from '../../src/core/commands/node-store.ts';
import { testRooms } from '../kit/rooms.ts';

/** A node whose output is held back, and what it posts to other nodes. */
function heldNode() {
  const { deps } = testRooms();
  const held: { readonly run: () => void; readonly destroy: () => void }[] = [];
  const posted: MailboxRow[] = [];
  const backend: Backend = {
    ...deps.backend,
    onRecord: (run, holder) => void held.push({ run, destroy: () => holder?.destroy() }),
    nodes: {
      ...deps.backend.nodes,
      post: (_to, row) => {
        posted.push(row);
        return true;
      },
    },
  };
  return { questions: new NodeQuestions({ ...deps, backend }), held, posted };
}

it.each(['run', 'destroy'] as const)('waits for what is held back when it is asked: %s', async (way) => {
  const { questions, held, posted } = heldNode();
  questions.answerWith('revoked', (text) => `${text}!`);
  questions.receive({ kind: 'question', questionId: 'q-1', from: 'n2', topic: 'revoked', text: 'row' });
  await expect.poll(() => held.length).toBe(1);
  expect(posted).toEqual([]);
  held[0]?.[way]();
  await expect.poll(() => posted).toEqual([{ kind: 'answer', questionId: 'q-1', text: 'row!' }]);
});
