/** The type that describes an operation which is not served by a REST document. */
import type { JsonSchema } from '../named.ts';
import type { Parameter } from './components.ts';

/** An operation that no REST document serves. The OpenAPI document describes it beside the routes. */
export type Described = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** The OpenAPI operation without what is added to every operation: its tag and its problem responses. */
  readonly operation: JsonSchema & {
    readonly operationId: string;
    readonly parameters?: readonly Parameter[];
    readonly responses: Readonly<Record<string, JsonSchema>>;
  };
  /** The statuses of its problem responses. */
  readonly problems: readonly string[];
  /** The security schemes that only this operation uses. */
  readonly securitySchemes?: Readonly<Record<string, JsonSchema>>;
};
