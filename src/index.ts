/**
 * The public API for programs that embed a relay. Client libraries are in `callboard/runtime`, `callboard/caller`,
 * `callboard/host`, `callboard/site`, `callboard/admin`, `callboard/live` and `callboard/react`.
 */
import './require-node.ts';

export {
  attach,
  cleanSpillDirectory,
  createCallboard,
  openCallboard,
  type AttachOptions,
  type Callboard,
  type CallboardOptions,
  type Settings,
} from './callboard.ts';
export { readConfig, type Config } from './config.ts';
export { type AuthConfig } from './config/auth-config.ts';
export { type RedisConfig } from './config/redis-config.ts';
export type { HostServer } from './http/server.ts';
export { createSignIn, type SignIn } from './http/sign-in.ts';
export { signToken, type TokenRequest } from './http/tokens.ts';
export { CallboardError, type Code, type ErrorDetails, type InputError as Fault } from './core/errors.ts';
export type { AdminPrincipal, Authenticator, Principal, Scope, UserPrincipal } from './core/auth/principal.ts';
export type { AdmissionScope, CallRate, InvocationTarget, Policy, PolicyDecision } from './core/auth/policy.ts';
export type { PolicyFile, PolicyRule, PolicyScope } from './core/auth/policy-file.ts';
export type { Backend, Capabilities } from './core/backend.ts';
export type { Clock, Log } from './core/ports.ts';
export type { Core } from './core/core.ts';
export type { SpillRead, SpillRef, SpillStore } from './core/history/message.ts';
export type { GivenBounds, ShareBound, ShareBounds, ShareName } from './core/shares/share-bounds.ts';
export type { TraceApi } from './platform/tracing.ts';
export { VERSION } from './version.ts';
