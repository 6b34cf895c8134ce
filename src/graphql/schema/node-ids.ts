/** Encodes and decodes the opaque ids of the interface `Node`. It has no state and reads nothing. */
import { invalid } from '../../core/errors.ts';
import { isSuffix } from '../../core/history/message.ts';
import { isCanonicalUser, isId } from '../../core/ids.ts';
import { NODE_ID_CHARS } from '../../core/limits.ts';

const CLIENT = ['userId', 'clientId'] as const;
const COMMAND = [...CLIENT, 'commandId'] as const;

/**
 * The kinds of ids: a letter, and the parts of the key by which the row is found. Only the last part may contain a `/`.
 * The letters and the order of the parts must never change within a version. `SiteOfSession` is the id of a site for
 * the holder of a grant: the key of a site names its owner, so this id names the session instead.
 */
const FORMS = {
  User: { letter: 'u', parts: ['userId'] },
  ConnectionSnapshot: { letter: 'c', parts: CLIENT },
  Stream: { letter: 's', parts: ['userId', 'suffix'] },
  Message: { letter: 'm', parts: ['seq', 'at', 'userId', 'suffix'] },
  PendingRpc: { letter: 'w', parts: [...COMMAND, 'rpcId'] },
  Command: { letter: 'k', parts: COMMAND },
  DeliveryRecord: { letter: 'd', parts: COMMAND },
  ExecutionContext: { letter: 'x', parts: [...CLIENT, 'contextId'] },
  BrowserWindow: { letter: 'b', parts: [...CLIENT, 'windowId'] },
  Site: { letter: 't', parts: ['userId', 'siteId'] },
  SiteOfSession: { letter: 'v', parts: ['sessionId'] },
  SiteSession: { letter: 'e', parts: ['sessionId'] },
  SiteGrant: { letter: 'g', parts: ['sessionId', 'grantId'] },
  DispatcherNode: { letter: 'n', parts: ['nodeId'] },
  CapacityScope: { letter: 'p', parts: ['scopeId'] },
} as const;

type Forms = typeof FORMS;
export type NodeKind = keyof Forms;
type PartName<Kind extends NodeKind = NodeKind> = Forms[Kind]['parts'][number];
/** The parts of a key as texts. Numbers are decimal. */
export type NodeKey<Kind extends NodeKind> = Readonly<Record<PartName<Kind>, string>>;
/** The row that an id refers to: its kind and its key. */
export type NodeRef<Kinds extends NodeKind = NodeKind> = {
  [Kind in Kinds]: { readonly kind: Kind; readonly key: NodeKey<Kind> };
}[Kinds];

const VERSION = '1';
const NUMBER = /^(0|[1-9][0-9]{0,15})$/;

/** The checks of those parts that are not simply ids (`isId`). */
const PART_FORMS: Partial<Record<PartName, (text: string) => boolean>> = {
  userId: isCanonicalUser,
  suffix: isSuffix,
  seq: (text) => NUMBER.test(text),
  at: (text) => NUMBER.test(text),
  // A group in the policy file may have any text as its name.
  scopeId: (text) => text.length > 0,
};

/** Returns the id of a row. Equal keys give equal ids, on every node and in every process. */
export function nodeIdOf<Kind extends NodeKind>(
  kind: Kind,
  key: Readonly<Record<PartName<Kind>, string | number>>,
): string {
  const form: { readonly letter: string; readonly parts: readonly PartName<Kind>[] } = FORMS[kind];
  return sealed(`${VERSION}${form.letter}${form.parts.map((part) => key[part]).join('/')}`);
}

/**
 * Returns the row that an id refers to. Throws `invalid_argument` with the parameter's name if the id cannot come from
 * `nodeIdOf`.
 */
export function readNodeId(parameter: string, id: string): NodeRef {
  const text = id.length <= NODE_ID_CHARS ? Buffer.from(id, 'base64url').toString() : '';
  return refOf(text, id) ?? invalid(parameter, 'expected an id from a field `id` of this relay');
}

function refOf(text: string, id: string): NodeRef | null {
  const kind = KINDS.get(text.slice(0, 2));
  if (!kind || sealed(text) !== id) return null;
  const names: readonly PartName[] = FORMS[kind].parts;
  const values = partsOf(text.slice(2), names.length);
  const fits = values.length === names.length && names.every((name, i) => isPart(name, values[i] ?? ''));
  return fits ? ({ kind, key: Object.fromEntries(names.map((name, i) => [name, values[i]])) } as NodeRef) : null;
}

const KINDS: ReadonlyMap<string, NodeKind> = new Map(
  (Object.keys(FORMS) as NodeKind[]).map((kind) => [VERSION + FORMS[kind].letter, kind]),
);

/** Splits a text at its first `count - 1` slashes. */
function partsOf(text: string, count: number): readonly string[] {
  const parts = text.split('/');
  return parts.length <= count ? parts : [...parts.slice(0, count - 1), parts.slice(count - 1).join('/')];
}

function isPart(name: PartName, text: string): boolean {
  return (PART_FORMS[name] ?? isId)(text);
}

function sealed(text: string): string {
  return Buffer.from(text).toString('base64url');
}
