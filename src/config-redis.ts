/** The settings of the Redis that the nodes of a deployment share. */
import type { SettingValues } from './settings.ts';

/** The Redis that the nodes of a deployment share. */
export type RedisConfig = {
  /** The URL of Redis. It may contain a password, so it must never be logged or printed. */
  readonly url: string;
  readonly partitions: number;
  /**
   * The durability of the store, as declared. Null: the relay takes what Redis reports, and Redis must write to disk.
   */
  readonly durability: 'memory' | 'aof_everysec' | 'aof_always' | null;
  readonly namespace: string;
  readonly strictMigration: boolean;
  /** The keys of an earlier system in the same Redis. */
  readonly legacy: { readonly commandStream: string | null; readonly pending: string | null };
};

export function redisOf(settings: SettingValues): RedisConfig | null {
  if (settings.REDIS_URL === undefined) return null;
  return {
    url: settings.REDIS_URL,
    partitions: settings.PARTITIONS,
    durability: settings.DURABILITY ?? null,
    namespace: settings.NAMESPACE,
    strictMigration: settings.STRICT_MIGRATION,
    legacy: { commandStream: settings.LEGACY_COMMAND_STREAM ?? null, pending: settings.LEGACY_PENDING ?? null },
  };
}
