/** The scenes in which alice calls: one scene is a short story of invocations. */
import { pick, target, type Program, type Scene } from './scene.ts';

const ops = (action: string) => target('alice', 'ops-console', action);
const phone = (action: string) => target('alice', 'phone', action);
/** Longer than the phone's longest sleep. */
const UNTIL_AWAKE_MS = 30_000;

const echo: Scene = ({ caller, id }) =>
  caller('alice').invoke(
    ops('echo'),
    { text: pick('Anybody there?', 'Good morning.', 'One, two.') },
    { traceId: id('trace') },
  );

const load: Scene = ({ caller }) => caller('alice').invoke(ops('host.load'));

const files: Scene = ({ caller }) => caller('alice').invoke(ops('files.list'), { folder: pick('actions', 'scenes') });

/** Fails: the handler throws. */
const noFolder: Scene = ({ caller }) => caller('alice').invoke(ops('files.list'), { folder: 'attic' });

const restart: Scene = ({ caller }) =>
  caller('alice').invoke(ops('service.restart'), { service: pick('web', 'mail'), seconds: 0.4 });

/** Fails: the console's own policy refuses it. */
const denied: Scene = ({ caller }) => caller('alice').invoke(ops('service.restart'), { service: 'database' });

/** Ends as `outcome_unknown` at the deadline. The late result arrives shortly after and is retained as evidence. */
const late: Scene = ({ caller }) =>
  caller('alice').invoke(ops('service.restart'), { service: 'web', seconds: 1.6 }, { respondWithinMs: 1000 });

/** Refused: the client does not advertise the action. */
const noSuchAction: Scene = ({ caller }) => caller('alice').invoke(ops('coffee.make'), { strong: true });

/** Waits for the phone while it sleeps. */
const locate: Scene = ({ caller, signal }) =>
  caller('alice').invoke(
    phone('location.read'),
    { accuracy: pick('coarse', 'fine') },
    { connectWithinMs: UNTIL_AWAKE_MS, signal },
  );

/** Refused while the phone sleeps, because the call has no connect budget. */
const locateNow: Scene = ({ caller }) => caller('alice').invoke(phone('location.read'));

/** Expires while the phone sleeps. */
const locateSoon: Scene = ({ caller }) => caller('alice').invoke(phone('location.read'), {}, { connectWithinMs: 1000 });

/** Needs an approval, which is sometimes refused. */
const photo: Scene = ({ caller, signal }) =>
  caller('alice').invoke(
    phone('photo.take'),
    { subject: pick('the lake', 'a heron', 'my lunch') },
    { connectWithinMs: UNTIL_AWAKE_MS, signal },
  );

/** Parked while the phone sleeps, and cancelled before it wakes. */
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
