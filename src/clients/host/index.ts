/**
 * Exports `callboard/host` (Node only), which publishes events of a cooperative site, and runs the control server
 * through which local programs do so.
 */
export { HostError, createSiteEventPublisher, type HostErrorDetails } from './publisher.ts';
export type { HostRuntime, NewSiteEvent, PublisherOptions, PublishReceipt, SiteEventPublisher } from './publisher.ts';
export { startCooperativeSiteControlServer, type ControlServer, type ControlServerOptions } from './control-server.ts';
export { SiteRefusedError } from '../runtime/action-errors.ts';
export type { Runtime, SiteDefinition, SiteRegistration } from '../runtime/types.ts';
export { rawJson, type RawJson } from '../link/raw-json.ts';
export { type Clock } from '../link/platform.ts';
export type { ErrorCode } from '../link/library-error.ts';
