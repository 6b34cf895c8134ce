/** The GraphQL documents of the cost mode: a kind for each root field and sender, and one for growing texts. */
import { GROWING_DOCUMENTS } from '../documents.ts';
import type { Draw } from '../random.ts';
import { sendDocument } from '../send-document.ts';
import type { CostInput, CostKind, Sender } from './cost.ts';
import {
  documentBody,
  drawDocument,
  growDocument,
  rootFields,
  showDocument,
  type DocumentGene,
  type Operation,
} from './document-gene.ts';
import { answerOf } from './answer.ts';
import type { CostTarget } from './target.ts';

/** How long the events of a subscription are read, in milliseconds. */
const EVENTS_MS = 300;
const SENDERS: readonly Sender[] = ['user', 'admin'];
const TEXT_MAX = 900_000;

export function documentKinds(target: CostTarget): readonly CostKind[] {
  const fields = (['query', 'mutation', 'subscription'] as const).flatMap((operation) =>
    rootFields(operation).map((field) => ({ operation, field })),
  );
  return SENDERS.flatMap((sender) => [
    ...fields.map((of): CostKind => ({
      family: 'documents',
      name: `${of.operation} ${of.field}`,
      sender,
      draw: (draw) => inputOf(target, sender, drawDocument(draw, { ...of, known: target.known })),
    })),
    ...GROWING_DOCUMENTS.map((_, form): CostKind => ({
      family: 'documents',
      name: `document text ${form}`,
      sender,
      draw: (draw) => textOf(target, sender, { form, size: draw.size(1_000) }),
    })),
  ]);
}

function inputOf(target: CostTarget, sender: Sender, gene: DocumentGene): CostInput {
  return {
    prepare: async () => () => send(target, sender, { operation: gene.operation, body: documentBody(gene) }),
    finish: async () => {},
    mutate: (draw: Draw) => inputOf(target, sender, growDocument(draw, gene, target.known)),
    show: () => showDocument(gene),
  };
}

type Text = { readonly form: number; readonly size: number };

function textOf(target: CostTarget, sender: Sender, { form, size }: Text): CostInput {
  const body = (): string => JSON.stringify({ query: GROWING_DOCUMENTS[form]?.(size) ?? '' });
  return {
    prepare: async () => {
      const text = body();
      return () => send(target, sender, { operation: 'query', body: text });
    },
    finish: async () => {},
    // Small texts are refused by other rules than large ones, so some mutants are smaller.
    mutate: (draw: Draw) =>
      textOf(target, sender, {
        form,
        size: Math.min(TEXT_MAX, Math.max(1, Math.round(size * draw.pick([0.5, 0.9, 1.2, 2, 4])))),
      }),
    show: () => body(),
  };
}

async function send(
  target: CostTarget,
  sender: Sender,
  { operation, body }: { readonly operation: Operation; readonly body: string },
): Promise<string> {
  const token = target.token(sender);
  if (operation !== 'subscription')
    return answerOf(await sendDocument(target.url, body, { agent: target.agent, token, address: '10.0.0.1' }));
  let text = '';
  try {
    const response = await fetch(`${target.url}/graphql`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'text/event-stream',
        'content-type': 'application/json',
      },
      body,
      signal: AbortSignal.timeout(EVENTS_MS),
    });
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString('utf8');
    return answerOf({ status: response.status, text });
  } catch {
    return `events: ${text.length} characters`;
  }
}
