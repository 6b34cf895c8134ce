/**
 * Defines the schema of devices: how a device asks to be enrolled, how a person decides, the token that a device gets
 * for a proof of its key, and the listing.
 */
import { CODE_TRIES, DEVICE_ACTIONS, DEVICE_NAME_CHARS, ENROLMENT_MS, MAX_REASON } from '../../core/limits.ts';
import { subjectOf } from '../../core/auth/principal.ts';
import type { OpenEnrolment } from '../../core/devices/device.ts';
import type { DeviceAnswer, DeviceView, ShownCode } from '../../core/devices/devices.ts';
import { builder, wireEnum } from './builder.ts';
import { fieldsOf, flag, id, int, nullable, text, time, typed } from './fields.ts';
import { ClientTypeEnum, ConnectionSnapshot, loadSized } from './connections.ts';
import type { Context } from './context.ts';
import { ROWS_OF_USER, connectionOf, pageArguments, pageCost, pageOf } from './page.ts';
import { answered, orRefusal } from './refusal.ts';
import { RevocationReceiptType } from './revocations.ts';

const MINUTES = ENROLMENT_MS / 60_000;

const DeviceType = builder.objectRef<DeviceView>('Device').implement({
  description: 'A client that holds a key of its own, which a person has enrolled.',
  fields: fieldsOf((t) => ({
    userId: id('The user to whom the device belongs.'),
    clientId: id('The client as which it connects.'),
    name: text('What people call it.'),
    clientType: typed(ClientTypeEnum, 'What kind of program it is.'),
    actions: t.stringList({
      nullable: true,
      description: 'Patterns of the only actions that it may advertise; null: any.',
      resolve: ({ actions }) => actions && [...actions],
    }),
    keyId: text('The thumbprint of its public key (RFC 7638).'),
    enrolledAt: t.field({ type: 'DateTime', description: 'When a person confirmed it.', resolve: ({ at }) => at }),
    enrolledBy: t.string({ description: 'Who confirmed it: `admin:<name>` or `user:<id>`.', resolve: ({ by }) => by }),
    usedAt: nullable.time('When it last got a token; null: never.'),
    revoked: flag('Whether a revocation covers it: it gets no token any more.'),
    connection: t.field({
      type: ConnectionSnapshot,
      nullable: true,
      description: 'The device’s connection now; null if it has none, or it is forgotten.',
      resolve: (device, _, context) => loadSized(context, device),
    }),
  })),
});

const DeviceConnection = connectionOf('Device', DeviceType, { rows: 'devices' });

const EnrolmentCodeType = builder.objectRef<ShownCode>('EnrolmentCode').implement({
  description: 'The code that a device shows to a person.',
  fields: fieldsOf(() => ({
    userCode: text('The code, such as `WDJB-MJHT`.'),
    expiresAt: time('Until when it can be confirmed.'),
    pollMs: int('How long the device waits between two questions for its token, in milliseconds.'),
    now: time('The time of the relay, by which the device dates its next proofs.'),
  })),
});

const OpenEnrolmentType = builder.objectRef<OpenEnrolment>('OpenEnrolment').implement({
  description: 'What a device that shows a code says of itself. Nothing of it is proved but its key.',
  fields: fieldsOf((t) => ({
    name: text('What it calls itself.'),
    clientType: typed(ClientTypeEnum, 'What kind of program it says it is.'),
    actions: t.stringList({
      nullable: true,
      description: 'Patterns of the only actions that it may advertise; null: any.',
      resolve: ({ actions }) => actions && [...actions],
    }),
    network: text('The network from which it asked.'),
    at: time('When it asked.'),
    expiresAt: time('Until when it can be confirmed.'),
  })),
});

const DeviceStateEnum = wireEnum<DeviceAnswer['state']>('DeviceState', 'What a device learns about itself.', {
  open: 'No person has decided yet: ask again.',
  confirmed: 'A person has confirmed it.',
});

const DeviceAnswerType = builder.objectRef<DeviceAnswer>('DeviceAnswer').implement({
  description: 'What a device gets for a proof of its key.',
  fields: fieldsOf((t) => ({
    state: typed(DeviceStateEnum, 'Whether a person has confirmed the device.'),
    userId: t.id({
      nullable: true,
      description: 'The user to whom it belongs.',
      resolve: ({ device }) => device?.userId,
    }),
    clientId: t.id({
      nullable: true,
      description: 'The client as which it connects.',
      resolve: ({ device }) => device?.clientId,
    }),
    token: nullable.text('Its token, with the scope `connect` alone.'),
    tokenExpiresAt: nullable.time('When the token is no longer accepted.'),
    pollMs: int('How long the device waits before it asks again, in milliseconds.'),
    now: time('The time of the relay, by which the device dates its next proofs.'),
  })),
});

type DecidedView = { readonly device: DeviceView | null };
const EnrolmentDecisionType = builder.objectRef<DecidedView>('EnrolmentDecision').implement({
  description: 'What became of an enrolment.',
  fields: fieldsOf(() => ({
    device: nullable.typed(DeviceType, 'The device that was enrolled; null: it was denied.'),
  })),
});

const EnrolInput = builder.inputType('EnrolInput', {
  description: 'What a device says of itself, and a proof of its key.',
  fields: (t) => ({
    deviceName: t.string({
      required: true,
      description: `What people call it: 1 to ${DEVICE_NAME_CHARS} letters, digits, spaces and \`. _ -\`.`,
    }),
    clientType: t.field({ type: ClientTypeEnum, required: true, description: 'What kind of program it is.' }),
    actionPatterns: t.stringList({
      description: `Patterns of the only actions that it may advertise: at most ${DEVICE_ACTIONS}. Omitted: any.`,
    }),
    proof: t.string({ required: true, description: 'A JWT, signed by the key that its header names.' }),
  }),
});

const EnrolmentDecisionEnum = wireEnum<'confirm' | 'deny'>('EnrolmentChoice', 'What a person decides.', {
  confirm: 'The device becomes a client of the user.',
  deny: 'The device gets nothing.',
});

const DecideEnrolmentInput = builder.inputType('DecideEnrolmentInput', {
  description: 'A code, and what the person decides.',
  fields: (t) => ({
    userCode: t.string({ required: true, description: 'The code that the device shows.' }),
    decision: t.field({ type: EnrolmentDecisionEnum, required: true, description: 'What the person decides.' }),
    userId: t.id({
      description: 'The user to whom the device shall belong. A user may omit it, and may name no other one.',
    }),
    clientId: t.id({ description: 'The client that it shall be. Omitted: one that is made of its name.' }),
  }),
});

const EnrolResult = orRefusal('EnrolResult', EnrolmentCodeType, 'The code to show, or a refusal.');
const LookUpResult = orRefusal('LookUpEnrolmentResult', OpenEnrolmentType, 'What the device says, or a refusal.');
const DecideResult = orRefusal('DecideEnrolmentResult', EnrolmentDecisionType, 'What was decided, or a refusal.');
const DeviceTokenResult = orRefusal('DeviceTokenResult', DeviceAnswerType, 'What the device gets, or a refusal.');
const RenameDeviceResult = orRefusal('RenameDeviceResult', DeviceType, 'The device, or a refusal.');
const RemoveDeviceResult = orRefusal('RemoveDeviceResult', RevocationReceiptType, 'What was ended, or a refusal.');

/** Returns what the rate limit counts a request by: its network if it has no token, otherwise its requester. */
const networkIn = ({ notes, requester }: Context): string =>
  notes?.network ?? (requester === null ? 'unknown' : subjectOf(requester));

builder.mutationFields((t) => ({
  enrol: t.field({
    type: EnrolResult,
    description: `Asks for a code with which a person enrols the device, within ${MINUTES} minutes. Needs no token. Another open code of the same key ends.`,
    args: { input: t.arg({ type: EnrolInput, required: true, description: 'The device, and a proof of its key.' }) },
    resolve: (_, { input }, context) =>
      answered(() =>
        context.core.devices.begin(
          { name: input.deviceName, clientType: input.clientType, actions: input.actionPatterns, proof: input.proof },
          networkIn(context),
        ),
      ),
  }),
  lookUpEnrolment: t.field({
    type: LookUpResult,
    description: `Shows which device shows a code, before a person decides. After ${CODE_TRIES.most} wrong codes in ${CODE_TRIES.ms / 60_000} minutes it answers \`rate_limited\`.`,
    args: { userCode: t.arg.string({ required: true, description: 'The code that the device shows.' }) },
    resolve: (_, { userCode }, { core, requester }) => answered(() => core.devices.lookUp(requester, userCode)),
  }),
  decideEnrolment: t.field({
    type: DecideResult,
    description:
      'Confirms or denies the device that shows a code. The first decision counts. Needs the scopes `connect` and `invoke`; an administrator names the user.',
    args: {
      input: t.arg({ type: DecideEnrolmentInput, required: true, description: 'The code, and what is decided.' }),
    },
    resolve: (_, { input }, { core, requester, notes }) =>
      answered(async () => ({
        device: await core.devices.decide(requester, { ...input, code: input.userCode }, notes?.requestId),
      })),
  }),
  deviceToken: t.field({
    type: DeviceTokenResult,
    description: 'Gives a device its token, as soon as a person has confirmed it, and later a new one. Needs no token.',
    args: { proof: t.arg.string({ required: true, description: 'A JWT, signed by the key that its header names.' }) },
    resolve: (_, { proof }, { core }) => answered(() => core.devices.token(proof)),
  }),
  renameDevice: t.field({
    type: RenameDeviceResult,
    description: 'Gives a device another name. Its client id stays.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user of the device.' }),
      clientId: t.arg.id({ required: true, description: 'The client that the device is.' }),
      deviceName: t.arg.string({ required: true, description: 'What people call it.' }),
    },
    resolve: (_, { deviceName, ...key }, { core, requester, notes }) =>
      answered(() => core.devices.rename(requester, key, deviceName, notes?.requestId)),
  }),
  removeDevice: t.field({
    type: RemoveDeviceResult,
    description: 'Removes a device and revokes its tokens: its link ends, and it gets no token any more.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user of the device.' }),
      clientId: t.arg.id({ required: true, description: 'The client that the device is.' }),
      reason: t.arg.string({ description: `Why: at most ${MAX_REASON} characters.` }),
    },
    resolve: (_, { reason, ...key }, { core, requester, notes }) =>
      answered(() =>
        core.devices.remove(requester, { ...key, reason: reason ?? 'The device was removed.' }, notes?.requestId),
      ),
  }),
}));

builder.queryFields((t) => ({
  devices: t.field({
    type: DeviceConnection,
    description: 'Which devices are enrolled, by user and client.',
    complexity: pageCost,
    args: { ...pageArguments, userId: t.arg.id(ROWS_OF_USER) },
    resolve: (_, { userId, ...page }, { core, requester }) => core.devices.list(requester, userId, pageOf(page)),
  }),
}));
