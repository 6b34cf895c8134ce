/** Runs the verbs about devices: listing, confirming, denying, renaming and removing them. */
import { confirmed, readAddress } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { listing } from '../listing.ts';
import { objectText } from '../output.ts';
import type { RunVerb } from '../verb.ts';

const DEVICE = {
  shown: ['user_id', 'client_id', 'name', 'client_type', 'enrolled_at', 'enrolled_by', 'used_at', 'revoked'],
  id: ['user_id', 'client_id'],
};

export const devicesLs = listing('/devices', DEVICE, ({ flags }) => ({ user_id: flags['userId'] }));

/** Shows what the device with a code says about itself, asks the operator, and confirms the device. */
export const devicesConfirm: RunVerb = async (run) => {
  const { args, flags, io, output, relay } = run;
  const [code = ''] = args;
  const device = await relay.read('/enrolments/lookup', { method: 'POST', body: { code }, repeatable: false });
  io.complain(objectText(device, 'table', { id: ['name'] }));
  await confirmed(run, 'Enrolling this device', String(Reflect.get(device, 'name')));
  const { userId: user_id, clientId: client_id } = flags;
  const body = { code, decision: 'confirm', user_id, client_id };
  const decided = await relay.read('/enrolments/decide', { method: 'POST', body, repeatable: false });
  io.print(objectText(decided, output, { id: ['device.client_id'] }));
};

export const devicesDeny: RunVerb = async ({ args: [code = ''], io, relay }) => {
  const body = { code, decision: 'deny' };
  await relay.read('/enrolments/decide', { method: 'POST', body, repeatable: false });
  io.complain('The device was denied.\n');
};

export const devicesRename: RunVerb = async ({ args, io, output, relay }) => {
  const [userId, clientId] = readAddress(args[0] ?? '', 2);
  const [, name = ''] = args;
  const renamed = await relay.read(pathOf(userId, clientId), { method: 'PUT', body: { name }, repeatable: true });
  io.print(objectText(renamed, output, DEVICE));
};

/**
 * Removes a device. If a node has not answered, exits with 1, because that node may still accept the device's token.
 */
export const devicesRm: RunVerb = async (run) => {
  const { args, flags, io, output, relay } = run;
  const [userId, clientId] = readAddress(args[0] ?? '', 2);
  await confirmed(run, `Removing the device ${clientId}`, clientId);
  const { reason } = flags;
  const receipt = await relay.read(pathOf(userId, clientId), {
    method: 'DELETE',
    query: { reason },
    repeatable: false,
  });
  io.print(objectText(receipt, output, { id: ['revocation.revocation_id'] }));
  const silent = Array.isArray(receipt['silent']) ? receipt['silent'] : [];
  if (silent.length === 0) return EXIT.done;
  io.complain(`These nodes did not answer, and may still accept its token: ${silent.join(', ')}\n`);
  return EXIT.failed;
};

function pathOf(userId: string, clientId: string): string {
  return `/devices/${encodeURIComponent(userId)}/${encodeURIComponent(clientId)}`;
}
