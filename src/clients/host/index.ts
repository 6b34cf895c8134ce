/**
 * Exports `callboard/host` (Node only), which publishes events of a cooperative site, and lets local applications do so
 * over HTTP.
 */
export { createSiteEventPublisher } from './publisher.ts';
export type { HostRuntime, NewSiteEvent, PublisherOptions, PublishReceipt, SiteEventPublisher } from './publisher.ts';
export { startCooperativeSiteControlServer } from './control-server.ts';
export type { ControlServer, ControlServerOptions } from './control-server.ts';
export { HostError, type HostErrorDetails } from './publisher.ts';
export { SiteRefusedError } from '../runtime/ends.ts';
export type { Runtime, SiteDefinition, SiteRegistration } from '../runtime/types.ts';
export type { Clock } from '../link/platform.ts';
export { rawJson, type RawJson } from '../link/platform.ts';
