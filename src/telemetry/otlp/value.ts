/** Values and attributes of OTLP in its JSON form (OpenTelemetry Protocol 1.5, "JSON Protobuf Encoding"). */

/** The JSON form of a 64-bit integer is a string. */
export type OtlpValue =
  | { readonly stringValue: string }
  | { readonly intValue: string }
  | { readonly doubleValue: number }
  | { readonly boolValue: boolean }
  | { readonly arrayValue: { readonly values: readonly OtlpValue[] } };

export interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}

type AttributeValue = string | number | boolean | readonly string[];

/** Undefined: no attribute. */
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

export function attributesOf(values: Attributes): readonly OtlpAttribute[] {
  const attributes: OtlpAttribute[] = [];
  for (const key in values) {
    const value = values[key];
    if (value !== undefined) attributes.push({ key, value: otlpValue(value) });
  }
  return attributes;
}

function otlpValue(value: AttributeValue): OtlpValue {
  switch (typeof value) {
    case 'string':
      return { stringValue: value };
    case 'boolean':
      return { boolValue: value };
    case 'number':
      return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
    default:
      return { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } };
  }
}

/**
 * Returns nanoseconds since the epoch, as OTLP's JSON writes them. @param ms milliseconds since the epoch, with a
 * fraction if any
 */
export function unixNano(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${String(Math.floor((ms - whole) * 1e6)).padStart(6, '0')}`;
}
