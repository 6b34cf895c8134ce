/** The table of operator verbs about access: revocations, devices and the policy. */
import { PAGE_FLAGS, YES_FLAG } from './flags.ts';
import type { Verb } from './verb.ts';

export const ACCESS_VERBS: readonly Verb[] = [
  {
    name: 'revoke',
    brief: 'Revoke tokens: end their links and streams, and refuse them from now on',
    flags: {
      userId: 'Only tokens of this user',
      clientId: 'Only links of this client of the user',
      tokenId: 'Only the token with this id (jti)',
      issuedBefore: 'Only tokens that were issued before this: a time, or an age such as 10m (default: now)',
      reason: 'Why',
      ...YES_FLAG,
    },
    examples: ["revoke --user-id alice --client-id tablet --reason 'the tablet is lost' --yes"],
    load: async () => (await import('./run/revocations.ts')).revoke,
  },
  {
    name: 'revocations ls',
    brief: 'List what is revoked, newest first',
    flags: PAGE_FLAGS,
    load: async () => (await import('./run/revocations.ts')).revocationsLs,
  },
  {
    name: 'devices ls',
    brief: 'List enrolled devices',
    flags: { userId: 'Only devices of this user', ...PAGE_FLAGS },
    load: async () => (await import('./run/devices.ts')).devicesLs,
  },
  {
    name: 'devices confirm',
    brief: 'Enrol the device that shows a code',
    args: ['code'],
    flags: {
      userId: 'The user to whom it shall belong; needed by administrators',
      clientId: 'The client that it shall be (default: made of its name)',
      ...YES_FLAG,
    },
    examples: ['devices confirm WDJB-MJHT --user-id shop'],
    load: async () => (await import('./run/devices.ts')).devicesConfirm,
  },
  {
    name: 'devices deny',
    brief: 'Deny the device that shows a code',
    args: ['code'],
    load: async () => (await import('./run/devices.ts')).devicesDeny,
  },
  {
    name: 'devices rename',
    brief: 'Give a device another name',
    args: ['user/client', 'name'],
    load: async () => (await import('./run/devices.ts')).devicesRename,
  },
  {
    name: 'devices rm',
    brief: 'Remove a device: end its link, and refuse its token from now on',
    args: ['user/client'],
    flags: { reason: 'Why', ...YES_FLAG },
    load: async () => (await import('./run/devices.ts')).devicesRm,
  },
  {
    name: 'policy check',
    brief: 'Read a policy file and name each fault in it; needs no relay',
    args: ['file'],
    shared: [],
    load: async () => (await import('./run/policy.ts')).policyCheck,
  },
  {
    name: 'policy diff',
    brief: 'Show which calls of the last hour a policy file would refuse',
    args: ['file'],
    flags: { since: 'How far to look back: a time, or an age (default 1h)' },
    examples: ['policy diff policy.json --since 24h -o json'],
    load: async () => (await import('./run/policy.ts')).policyDiff,
  },
];
