/** Declares the types of the rules of graphql-schema-linter, which has no types of its own. */

declare module 'graphql-schema-linter/lib/rules/*' {
  import type { ValidationRule } from 'graphql';
  export const RelayConnectionTypesSpec: ValidationRule;
  export const RelayPageInfoSpec: ValidationRule;
  export const RelayConnectionArgumentsSpec: ValidationRule;
}
