/** Loaded into a server before its own code: the clock of its machine is `CLOCK_SKEW_MS` ahead of the database's. */

const skewMs = Number(process.env['CLOCK_SKEW_MS']);
const trueNow = Date.now.bind(Date);

Date.now = () => trueNow() + skewMs;
