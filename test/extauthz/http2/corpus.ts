/**
 * Connections that were found to matter, as a client sends them behind the preface: each once ended wrongly here or in
 * another server, or shows a corner of the protocol. `node bench/fuzz/http2/run.ts` prints new ones in this form.
 */

export const CORPUS: readonly (readonly [name: string, hex: string])[] = [
  ['only settings', '000000040000000000'],
  ['settings of a length that is no multiple of 6', '0000050400000000000000000000'],
  ['an empty block', '000000040000000000 000000010500000001'],
  ['a block that only resizes the table', '000000040000000000 000001010500000001 20'],
  ['HEADERS that are only padding', '000000040000000000 000003010d00000001 020000'],
  ['HEADERS whose padding is longer than the frame', '000000040000000000 000001010d00000001 ff'],
  ['HEADERS with a priority that is cut off', '000000040000000000 000003012500000001 000000'],
  ['CONTINUATION that never ends', `000000040000000000 000000010000000001 ${'000000090000000001'.repeat(20)}`],
  ['DATA whose padding is as long as the frame', '000000040000000000 000001000800000001 01'],
  ['a window update that overflows', '000000040000000000 0000040800000000007fffffff'],
  ['a stream with the highest number', '000000040000000000 00000101057fffffff 82'],
  ['a reserved bit that is set', '000000040000000000 000000010580000001'],
  ['a reference to the dynamic table in the first block', '000000040000000000 000001010500000001 be'],
  ['an index that grows for ever', `000000040000000000 000014010500000001 ${'ff'.repeat(20)}`],
  [
    'an access log without a message, which is answered',
    '000000040000000000 0000610105 00000001 8386043d2f656e766f792e736572766963652e6163636573736c6f672e76332e4163636573734c6f67536572766963652f53747265616d4163636573734c6f67730f10106170706c69636174696f6e2f67727063000274650874726169 6c657273',
  ],
  ['settings that shut every window behind a call', '000000040000000000 000006040000000000000400000000'],
];
