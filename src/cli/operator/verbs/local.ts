/** Declares the verbs that need no relay: contexts, and completion for shells. */
import type { Verb } from '../verb.ts';

const TOKEN_FLAGS = ['tokenFile', 'tokenCommand'] as const;

export const LOCAL_VERBS: readonly Verb[] = [
  {
    name: 'context add',
    brief: 'Add or replace a context: a relay, and where its token comes from',
    args: ['name', 'url'],
    flags: { storeToken: { help: 'Store the token of CALLBOARD_TOKEN in the file of contexts', on: true } },
    shared: TOKEN_FLAGS,
    output: false,
    examples: ["context add prod https://relay.example --token-command 'pass show relay'"],
    load: async () => (await import('../run/context.ts')).contextAdd,
  },
  {
    name: 'context use',
    brief: 'Make a context the current one',
    args: ['name'],
    shared: [],
    output: false,
    load: async () => (await import('../run/context.ts')).contextUse,
  },
  {
    name: 'context previous',
    brief: 'Make the context current that was before',
    shared: [],
    output: false,
    load: async () => (await import('../run/context.ts')).contextPrevious,
  },
  {
    name: 'context ls',
    brief: 'List contexts',
    shared: [],
    load: async () => (await import('../run/context.ts')).contextLs,
  },
  {
    name: 'context show',
    brief: 'Show a context, by default the current one; never a token',
    args: ['name?'],
    shared: [],
    load: async () => (await import('../run/context.ts')).contextShow,
  },
  {
    name: 'context rm',
    brief: 'Remove a context',
    args: ['name'],
    shared: [],
    output: false,
    load: async () => (await import('../run/context.ts')).contextRm,
  },
  {
    name: 'completion',
    brief: 'Print a script that completes commands in bash, zsh or fish',
    args: ['shell'],
    shared: [],
    output: false,
    examples: ['completion bash > ~/.local/share/bash-completion/completions/callboard'],
    load: async () => (await import('../run/completion.ts')).completion,
  },
];
