/** Parses and checks the text of a policy file. */
import { z } from 'zod';
import type { PolicyFile } from '../core/auth/policy-file.ts';
import type { InputError } from '../core/errors.ts';
import { ID_FORM, isId } from '../core/ids.ts';
import { parsedJson } from '../core/json.ts';

const globs = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).transform((one) => [one].flat());
const capacity = z.number().int().min(1).max(1_000_000);

const RULE = z.strictObject({
  name: z.string().min(1).max(64).optional(),
  effect: z.enum(['allow', 'deny']),
  user: globs.optional(),
  caller: globs.optional(),
  client_type: globs.optional(),
  action: globs.optional(),
});
const SCOPE = z.strictObject({
  id: z.string().refine(isId, `expected ${ID_FORM}`),
  members: globs,
  capacity,
  member_capacity: capacity.optional(),
});
const RATE = z.strictObject({
  name: z.string().min(1).max(64).optional(),
  user: globs.optional(),
  caller: globs.optional(),
  client_type: globs.optional(),
  action: globs.optional(),
  burst: z.number().int().min(1).max(1_000_000),
  per_second: z.number().min(0.001).max(1_000_000),
});
const FILE = z.strictObject({
  rules: z.array(RULE).max(1000).default([]),
  scopes: z.array(SCOPE).max(1000).default([]),
  rates: z.array(RATE).max(100).default([]),
  user_capacity: capacity.optional(),
});

/** The policy, or null and all faults. `parameter` of a fault is the path in the file, such as `rules[0].effect`. */
type PolicyRead = { readonly policy: PolicyFile | null; readonly faults: readonly InputError[] };

/**
 * Parses the text of a policy file. `rules`: each `allow` or `deny`, with patterns for `user`, `caller` (a scope of the
 * caller's token), `client_type` and `action`; their order matters. `scopes`: each with `members`, `capacity` and
 * `member_capacity`. `user_capacity`: for users in no scope. `rates`: each with the patterns of a rule, `burst` and
 * `per_second`.
 */
export function parsePolicyFile(text: string): PolicyRead {
  const value = parsedJson(text);
  if (value === undefined) return { policy: null, faults: [{ parameter: '', detail: 'the file is not JSON' }] };
  const parsed = FILE.safeParse(value);
  if (!parsed.success) return { policy: null, faults: parsed.error.issues.map(toFault) };
  const policy = toPolicy(parsed.data);
  const named = { scopes: policy.scopes.map(({ id }) => id), rates: policy.rates?.map(({ name }) => name) ?? [] };
  const faults = Object.entries(named).flatMap(([parameter, names]): InputError[] => {
    const twice = repeated(names);
    return twice === undefined ? [] : [{ parameter, detail: `"${twice}" appears twice` }];
  });
  return faults.length > 0 ? { policy: null, faults } : { policy, faults };
}

type Globs = Pick<z.infer<typeof RULE>, 'user' | 'caller' | 'client_type' | 'action'>;

function globsOf({ user, caller, client_type: clientType, action }: Globs) {
  return { users: user, callers: caller, clientTypes: clientType, actions: action };
}

function toPolicy(file: z.infer<typeof FILE>): PolicyFile {
  return {
    rules: file.rules.map((rule, index) => ({
      name: rule.name ?? `rules[${index}]`,
      effect: rule.effect,
      ...globsOf(rule),
    })),
    scopes: file.scopes.map(({ member_capacity: memberCapacity, ...scope }) => ({
      ...scope,
      ...(memberCapacity !== undefined && { memberCapacity }),
    })),
    rates: file.rates.map((rate, index) => ({
      name: rate.name ?? `rates[${index}]`,
      burst: rate.burst,
      perSecond: rate.per_second,
      ...globsOf(rate),
    })),
    userCapacity: file.user_capacity ?? null,
  };
}

function toFault(issue: z.core.$ZodIssue): InputError {
  const path = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  return { parameter: path.replace(/^\./, ''), detail: issue.message };
}

function repeated(ids: readonly string[]): string | undefined {
  return ids.find((id, index) => ids.indexOf(id) !== index);
}
