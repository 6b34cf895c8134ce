/** Defines the scenes in which alice calls. A scene is a short story of invocations. */
import { pick, target, type Program, type Scene } from './scene.ts';

const ops = (action: string) => target('alice', 'ops-console', action);
const phone = (action: string) => target('alice', 'phone', action);
/** How long a call waits for the phone, in milliseconds: longer than the phone's longest sleep. */
const UNTIL_AWAKE_MS = 30_000;

const echo: Scene = ({ caller, id }) =>
  caller('alice').invoke(
    ops('echo'),
    { text: pick('Anybody there?', 'Good morning.', 'One, two.') },
    { traceId: id('trace') },
  );

const load: Scene = ({ caller }) => caller('alice').invoke(ops('host.load'));

const files: Scene = ({ caller }) => caller('alice').invoke(ops('files.list'), { folder: pick('actions', 'scenes') });

/** Calls an action that fails, because its handler throws. */
const noFolder: Scene = ({ caller }) => caller('alice').invoke(ops('files.list'), { folder: 'attic' });

const restart: Scene = ({ caller }) =>
  caller('alice').invoke(ops('service.restart'), { service: pick('web', 'mail'), seconds: 0.4 });

/** Calls an action that fails, because the console's own policy refuses it. */
const denied: Scene = ({ caller }) => caller('alice').invoke(ops('service.restart'), { service: 'database' });

/**
 * Makes a call that ends as `outcome_unknown` at its deadline. The late result arrives shortly after and is retained as
 * evidence.
 */
const late: Scene = ({ caller }) =>
  caller('alice').invoke(ops('service.restart'), { service: 'web', seconds: 1.6 }, { respondWithinMs: 1000 });

/** Makes a call that is refused, because the client does not advertise the action. */
const noSuchAction: Scene = ({ caller }) => caller('alice').invoke(ops('coffee.make'), { strong: true });

/** Makes a call that waits for the phone while it sleeps. */
const locate: Scene = ({ caller, signal }) =>
  caller('alice').invoke(
    phone('location.read'),
    { accuracy: pick('coarse', 'fine') },
    { connectWithinMs: UNTIL_AWAKE_MS, signal },
  );

/** Makes a call that is refused while the phone sleeps, because the call has no connect budget. */
const locateNow: Scene = ({ caller }) => caller('alice').invoke(phone('location.read'));

/** Makes a call that expires while the phone sleeps. */
const locateSoon: Scene = ({ caller }) => caller('alice').invoke(phone('location.read'), {}, { connectWithinMs: 1000 });

/** Makes a call that needs an approval, which is sometimes refused. */
const photo: Scene = ({ caller, signal }) =>
  caller('alice').invoke(
    phone('photo.take'),
    { subject: pick('the lake', 'a heron', 'my lunch') },
    { connectWithinMs: UNTIL_AWAKE_MS, signal },
  );

/** Makes a call that is parked while the phone sleeps, and cancels it before the phone wakes. */
const changeOfMind: Scene = async ({ caller, pause, signal }) => {
  const parked = await caller('alice').invoke(
    phone('photo.take'),
    { subject: 'the moon' },
    { connectWithinMs: UNTIL_AWAKE_MS, waitFor: 'admitted' },
  );
  await pause(500, signal);
  return caller('alice').cancel(parked.handle, 'On second thoughts, no.');
};

export const ALICE: Program = [
  [2, echo],
  [2, load],
  [1, files],
  [1, noFolder],
  [1, restart],
  [1, denied],
  [1, late],
  [1, noSuchAction],
  [2, locate],
  [1, locateNow],
  [1, locateSoon],
  [1, photo],
  [1, changeOfMind],
];
