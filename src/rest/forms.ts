/** Describes the forms of texts and lists that core checks, as JSON Schemas. Only the OpenAPI document uses them. */
import { CONTROL_CHARS, ID_PATTERN, NAME_PATTERN } from '../core/ids.ts';
import {
  ERROR_CODE_CHARS,
  FILTER_TEXT_CHARS,
  ID_MAX_CHARS,
  INGEST_BATCH,
  LABELS_PER_FILTER,
  LABEL_MAX_CHARS,
  MAX_REASON,
  SITE_NAMES,
  STREAM_SUFFIX_SEGMENTS,
  TITLE_MAX_CHARS,
  TRACE_MAX_CHARS,
  USER_MAX_CHARS,
} from '../core/limits.ts';
import { RESERVED_EVENTS, RESERVED_PREFIX } from '../core/sites/definition.ts';
import { named, type JsonSchema } from './named.ts';

/** What core requires of an argument in addition to its GraphQL type. `list`: the bounds on the number of items. */
export type Form = { readonly schema?: JsonSchema; readonly list?: JsonSchema };

const USER_CHARS = `[^/${CONTROL_CHARS}]`;
const USER_CHARS_BUT_SPACE = `[^/\\s${CONTROL_CHARS}]`;
const SEGMENT = `(?!\\.{1,2}(?:/|$))${ID_PATTERN}`;
const MORE_SEGMENTS = `{0,${STREAM_SUFFIX_SEGMENTS - 1}}`;
const SUFFIX_CHARS = STREAM_SUFFIX_SEGMENTS * (ID_MAX_CHARS + 1);

function text(name: string, description: string, bounds: JsonSchema): Form {
  return { schema: named(name, { type: 'string', description, ...bounds }) };
}

const ID = text('Id', 'An id: of a client, an instance, a command, a session and so on.', {
  pattern: `^${ID_PATTERN}$`,
});
const ACTION = text('ActionName', 'The name of an action.', { pattern: `^${NAME_PATTERN}$` });
const EVENT = text('EventName', 'The name of an event. Names that an `EventSource` reserves are not allowed.', {
  pattern: `^(?!${RESERVED_PREFIX.replace('.', '\\.')})(?!(?:${[...RESERVED_EVENTS].join('|')})$)${NAME_PATTERN}$`,
});
const USER = text(
  'UserId',
  'A user id. The relay uses its canonical form (NFC, trimmed, an e-mail address in lower case), to which the bound of 128 characters applies.',
  { minLength: 1, maxLength: USER_MAX_CHARS, pattern: `^${USER_CHARS}*${USER_CHARS_BUT_SPACE}${USER_CHARS}*$` },
);
const TRACE = text('TraceText', 'An id of a tracing system.', {
  minLength: 1,
  maxLength: TRACE_MAX_CHARS,
  pattern: `^[^${CONTROL_CHARS}]*$`,
});
const CURSOR = text('Cursor', 'Opaque: the `next_cursor` of the page before, for the same filter and requester.', {
  minLength: 1,
  maxLength: 4096,
});
const STREAM_KEY = text('StreamKey', 'The full key of a stream: its user, a slash and its suffix.', {
  pattern: `^(?=[^/]{1,${USER_MAX_CHARS}}/)${USER_CHARS}*${USER_CHARS_BUT_SPACE}${USER_CHARS}*(?:/${ID_PATTERN}){1,${STREAM_SUFFIX_SEGMENTS}}$`,
});
const STREAM_PREFIX = text('StreamPrefix', 'The beginning of a stream suffix.', {
  pattern: `^[A-Za-z0-9_.:@~/-]{1,${SUFFIX_CHARS}}$`,
});
const STREAM_SUFFIX = text('StreamSuffix', 'The part of a stream’s key after the user.', {
  pattern: `^(?!clients(?:/|$))${SEGMENT}(?:/${SEGMENT})${MORE_SEGMENTS}$`,
});
const SITE_ID = text('SiteId', 'The id of a site.', { pattern: `^(?!\\.{1,2}$)${ID_PATTERN}$` });
const REASON: Form = { schema: { type: 'string', minLength: 1, maxLength: MAX_REASON } };
const TITLE: Form = { schema: { type: 'string', minLength: 1, maxLength: TITLE_MAX_CHARS } };
const KIND: Form = { schema: { type: 'string', const: 'event' } };
/**
 * The form of the params of an invocation. Names that begin with `__cooperative_site_`, in upper or lower case, are
 * reserved for the relay's own parameters.
 */
const PARAMS: Form = {
  schema: {
    type: 'object',
    additionalProperties: true,
    propertyNames: { pattern: `^(?!${anyCase('__cooperative_site_')})` },
  },
};
/** The form of a list of labels. In a query, commas separate them. */
const LABELS: Form = {
  ...text('Label', 'A label of a connection: `key=value`.', {
    minLength: 2,
    maxLength: LABEL_MAX_CHARS,
    pattern: '^[^=,]+=[^,]*$',
  }),
  list: { minItems: 1, maxItems: LABELS_PER_FILTER },
};
const CODE: Form = { schema: { type: 'string', minLength: 1, maxLength: ERROR_CODE_CHARS } };
const FILTER_TEXT: Form = { schema: { type: 'string', minLength: 1, maxLength: FILTER_TEXT_CHARS } };
const SITE_LIST = { maxItems: SITE_NAMES };

/** The form of each argument and input field by its GraphQL name. Names have one meaning in the whole schema. */
const FORMS: Readonly<Record<string, Form>> = {
  userId: USER,
  owner: USER,
  clientId: ID,
  instanceId: ID,
  commandId: ID,
  nodeId: ID,
  callerNodeId: ID,
  windowId: ID,
  taskId: ID,
  checkInstance: ID,
  messageId: ID,
  sessionId: ID,
  grantId: ID,
  siteId: SITE_ID,
  action: ACTION,
  actions: { ...ACTION, list: SITE_LIST },
  events: { ...EVENT, list: SITE_LIST },
  eventNames: { ...EVENT, list: SITE_LIST },
  names: { ...EVENT, list: SITE_LIST },
  traceId: TRACE,
  parentSpanId: TRACE,
  after: CURSOR,
  stream: STREAM_KEY,
  prefix: STREAM_PREFIX,
  streamSuffix: STREAM_SUFFIX,
  reason: REASON,
  title: TITLE,
  kind: KIND,
  params: PARAMS,
  labels: LABELS,
  code: CODE,
  text: FILTER_TEXT,
  messages: { list: { minItems: 1, maxItems: INGEST_BATCH } },
};

/** Returns the form of an argument; undefined if core accepts everything that its GraphQL type accepts. */
export function formOf(argument: string): Form | undefined {
  return Object.hasOwn(FORMS, argument) ? FORMS[argument] : undefined;
}

function anyCase(word: string): string {
  return word.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}
