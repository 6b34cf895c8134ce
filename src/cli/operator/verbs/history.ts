/** Declares the verbs about what the relay retains: streams, messages and the audit. */
import type { Verb } from '../verb.ts';
import { wordsOf } from '../wire.ts';
import { COUNT_FLAG, PAGE_FLAGS, TIME_FLAGS, USER_FLAG } from './shared.ts';

const KIND = { help: 'Only these kinds, separated by commas', values: wordsOf('MessageKind'), many: true } as const;

export const HISTORY_VERBS: readonly Verb[] = [
  {
    name: 'streams ls',
    brief: 'List the streams in which messages of a user are retained',
    args: ['user'],
    flags: { prefix: 'Only streams whose name after the user begins with this', ...PAGE_FLAGS },
    load: async () => (await import('../run/history.ts')).streamsLs,
  },
  {
    name: 'messages ls',
    brief: 'List retained messages of a stream, without payloads',
    args: ['stream'],
    flags: {
      kind: KIND,
      ...TIME_FLAGS,
      order: { help: 'Which come first (default oldest_first)', values: wordsOf('MessageOrder') },
      ...PAGE_FLAGS,
    },
    examples: ['messages ls alice/clients/desk --kind result,error --since 1h'],
    load: async () => (await import('../run/history.ts')).messagesLs,
  },
  {
    name: 'messages tail',
    brief: 'Print the newest messages of a stream, then those that come',
    args: ['stream'],
    flags: { kind: KIND, last: 'How many of the newest to begin with (default 10)', ...COUNT_FLAG },
    load: async () => (await import('../run/history.ts')).messagesTail,
  },
  {
    name: 'audit ls',
    brief: 'List what administrators did, newest first',
    flags: {
      ...USER_FLAG,
      who: 'Only this administrator, as admin:<name>',
      action: { help: 'Only this action', values: wordsOf('OperatorAction') },
      ...TIME_FLAGS,
      ...PAGE_FLAGS,
    },
    examples: ['audit ls --user-id alice --action reveal'],
    load: async () => (await import('../run/audit.ts')).auditLs,
  },
];
