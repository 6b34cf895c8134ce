/**
 * Declares the verbs about calls: invoke an action, check a call before it is sent, read what became of it, and list
 * waiting callers.
 */
import type { Verb } from '../verb.ts';
import { wordsOf } from '../wire.ts';
import { CLIENT_FLAGS, COUNT_FLAG, PAGE_FLAGS, TIME_FLAGS, USER_FLAG } from './shared.ts';

const PARAMS = { params: 'File with the parameters as JSON; - reads standard input' };
const BUDGETS = {
  connect: 'How long to wait for the client to connect, such as 5s (default 0s)',
  respond: 'How long the client may take, such as 30s (default 30s)',
};
const CALL_ARGS = ['user/client', 'action', 'params...'];
const ADDRESS = ['user/client/command'];

export const CALL_VERBS: readonly Verb[] = [
  {
    name: 'call',
    brief: 'Invoke an action of a client and wait for its end',
    args: CALL_ARGS,
    flags: {
      ...PARAMS,
      id: 'Id of the command; a repeated id never runs twice',
      ...BUDGETS,
      cancelOnInterrupt: { help: 'On an interruption, cancel the command instead of leaving it running', on: true },
    },
    examples: ['call alice/desk lamp.set on:=true colour=warm --connect 5s --respond 30s'],
    load: async () => (await import('../run/call.ts')).call,
  },
  {
    name: 'preflight',
    brief: 'Ask what would refuse a call; nothing is admitted or written',
    args: CALL_ARGS,
    flags: { ...PARAMS, id: 'Id of the command', ...BUDGETS },
    examples: ['preflight alice/desk lamp.set on:=true'],
    load: async () => (await import('../run/call.ts')).preflight,
  },
  {
    name: 'calls ls',
    brief: 'List calls that the relay tracks, newest first',
    flags: {
      ...CLIENT_FLAGS,
      action: 'Only this action',
      outcome: { help: 'Only this outcome', values: wordsOf('Outcome') },
      stage: { help: 'Only this stage', values: wordsOf('Stage') },
      code: 'Only this code of an error, such as handler_failed',
      clientType: { help: 'Only this kind of client', values: wordsOf('ClientType') },
      label: { help: 'Only clients with this label, as key=value', many: true },
      nodeId: 'Only this node',
      ...TIME_FLAGS,
      order: { help: 'newest first, or in order of the key (default newest)', values: wordsOf('CommandOrder') },
      ...PAGE_FLAGS,
    },
    examples: ['calls ls --outcome outcome_unknown --since 1h', 'calls ls --label room=12 -o jsonl --all'],
    load: async () => (await import('../run/calls.ts')).callsLs,
  },
  {
    name: 'calls get',
    brief: 'Show everything that is proven about a call',
    args: ADDRESS,
    load: async () => (await import('../run/calls.ts')).callsGet,
  },
  {
    name: 'calls await',
    brief: 'Wait for the end of a call',
    args: ADDRESS,
    flags: { within: 'How long to wait, such as 30s (default 30s)' },
    load: async () => (await import('../run/call.ts')).callsAwait,
  },
  {
    name: 'calls cancel',
    brief: 'Cancel a call',
    args: ADDRESS,
    flags: { reason: 'Why, for the record and the client' },
    load: async () => (await import('../run/calls.ts')).callsCancel,
  },
  {
    name: 'calls tail',
    brief: 'Print what happens to calls from now on',
    flags: {
      ...CLIENT_FLAGS,
      action: 'Only this action',
      outcome: { help: 'Only ends with these outcomes, separated by commas', values: wordsOf('Outcome'), many: true },
      clientType: { help: 'Only this kind of client', values: wordsOf('ClientType') },
      ...COUNT_FLAG,
    },
    examples: ['calls tail --outcome outcome_unknown,expired'],
    load: async () => (await import('../run/calls.ts')).callsTail,
  },
  {
    name: 'calls reveal',
    brief: 'Show one payload of a call, for a reason that the audit keeps',
    args: ADDRESS,
    flags: {
      reason: 'Why it is looked at; required',
      subject: { help: 'Which payload (default result)', values: ['params', 'result', 'message'] },
      message: 'Id of the retained message, for the subject message',
    },
    examples: ["calls reveal alice/desk/c1 --reason 'ticket 4711'"],
    load: async () => (await import('../run/reveal.ts')).callsReveal,
  },
  {
    name: 'waits ls',
    brief: 'List callers that wait, oldest first',
    flags: { ...CLIENT_FLAGS, older: 'Only waits older than this, such as 10s', ...PAGE_FLAGS },
    load: async () => (await import('../run/waits.ts')).waitsLs,
  },
  {
    name: 'waits count',
    brief: 'Count callers that wait',
    flags: { ...CLIENT_FLAGS, older: 'Only waits older than this, such as 10s' },
    load: async () => (await import('../run/waits.ts')).waitsCount,
  },
  {
    name: 'waits watch',
    brief: 'Print a line when the oldest wait gets too old, and when none is any more',
    flags: { older: 'The age, 1s to 10m (default 10s)', ...USER_FLAG, ...COUNT_FLAG },
    load: async () => (await import('../run/waits.ts')).waitsWatch,
  },
];
