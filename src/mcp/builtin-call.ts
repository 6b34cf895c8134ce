/** What a built-in tool is called with, and how it reads texts from its arguments. */
import type { Core } from '../core/core.ts';
import type { JsonText } from '../core/json.ts';
import type { AgentRequest } from './agent-request.ts';
import type { Calls } from './calls.ts';
import type { Catalog, Shown } from './catalog.ts';
import { refusal, type ToolResult } from './results.ts';

/** What the built-in tools work with. */
export type ToolServices = { readonly core: Core; readonly calls: Calls };

/** A call of a built-in tool. `tools`: what the requester is shown of the catalog of its user. */
export type BuiltinCall = {
  readonly name: string;
  readonly args: JsonText | null;
  readonly request: AgentRequest;
  readonly catalog: () => Promise<Catalog>;
  readonly tools: () => Promise<Shown>;
};

export type ToolArguments = Readonly<Record<string, unknown>>;
export type RunTool = (parts: ToolServices, call: BuiltinCall, given: ToolArguments) => Promise<ToolResult>;

/** Null and an empty text count as an absent argument, because models write them for one. */
export function isNoText(value: unknown): boolean {
  return value !== null && typeof value !== 'string';
}

export function textIn(given: ToolArguments, name: string): string | null {
  const value = given[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

export function missing(name: string): ToolResult {
  return refusal('invalid_argument', `${name}: is required, as a text.`, 'Repeat the call with it.');
}
