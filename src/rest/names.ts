/** `clientId` -> `client_id`: the wire's name of a GraphQL name. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
