/** `models/`: a kind of resource that the route takes and the request does not name. */
export function isUnnamed(resource: string): boolean {
  return resource.endsWith('/');
}
