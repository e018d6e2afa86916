/** The usage that a model's answer reported, as Envoy's filters put it into metadata. */

/** Whole tokens. */
export interface Usage {
  readonly prompt: number;
  readonly completion: number;
  /** Of the prompt, what came from a cache. */
  readonly cached: number;
  readonly total: number;
  /** The model that answered, as it calls itself. */
  readonly model: string | undefined;
}

/** Numbers that the filters found, by the names that `envoy/*.yaml` gives them. */
export interface UsageDraft {
  prompt_tokens: number | undefined;
  completion_tokens: number | undefined;
  cached_tokens: number | undefined;
  total_tokens: number | undefined;
  model: string | undefined;
}

/** No single answer spends more; what claims to is no measurement. */
const MAX_TOKENS = 1_000_000_000;

/** Undefined when neither a total nor its parts are there, or one of them is no number of tokens. */
export function usageOf(draft: UsageDraft): Usage | undefined {
  const { prompt_tokens, completion_tokens, cached_tokens, total_tokens, model } = draft;
  const known = [prompt_tokens, completion_tokens, cached_tokens, total_tokens].filter((value) => value !== undefined);
  if (known.some((value) => !Number.isInteger(value) || value < 0 || value > MAX_TOKENS)) return undefined;
  if (total_tokens === undefined && prompt_tokens === undefined && completion_tokens === undefined) return undefined;
  const parts = (prompt_tokens ?? 0) + (completion_tokens ?? 0);
  const total = total_tokens ?? parts;
  const prompt = prompt_tokens ?? Math.max(0, total - (completion_tokens ?? 0));
  const completion = completion_tokens ?? Math.max(0, total - prompt);
  return { prompt, completion, cached: cached_tokens ?? 0, total, model };
}
