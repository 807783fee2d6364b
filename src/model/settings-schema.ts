/** The settings of a series as JSON from outside, in orders and in failure reports. */
import * as v from 'valibot';
import { FORMATS, type Settings } from './task.js';

export const SettingsSchema = v.strictObject({
  format: v.picklist(FORMATS),
  partition: v.picklist(['day', 'month']),
  cadence: v.picklist(['auto', 'daily', 'monthly']),
  numbers: v.picklist(['double', 'string']),
  timestamps: v.picklist(['us', 'ms', 'iso', 'utc']),
  asPublished: v.boolean(),
});

/** A manifest line may have further settings. */
const KnownSettings = v.object(SettingsSchema.entries);

export const areSettings = (value: unknown): value is Settings => v.is(KnownSettings, value);
