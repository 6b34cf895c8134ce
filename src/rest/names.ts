/** Converts a GraphQL name into a wire name: `clientId` -> `client_id`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
