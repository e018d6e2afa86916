/** Text that an administrator chose freely, made safe as a header's value. */

/** Visible ASCII except the percent sign itself. */
const PLAIN = /^[!-$&-~]*$/;
const ENCODED = /[^!-$&-~]/gu;

/**
 * Visible ASCII stays as it is; every other character and `%` are percent-encoded as UTF-8, so that decoding once always gives the
 * text back (RFC 9110, section 5.5: nothing but visible ASCII is certain to arrive).
 */
export function headerText(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.toWellFormed().replace(ENCODED, (character) => {
    const hex = Buffer.from(character).toString('hex').toUpperCase();
    return hex.replace(/../g, '%$&');
  });
}
