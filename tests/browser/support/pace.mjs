/** How slow this machine is now: the same one is half as fast on some days, and slower beside other tests. */

/** What `work` takes on a good day: half of the 19 ms of a day on which a raw relay took twice its usual time. */
const USUAL_MS = 10
/** No machine was seen slower than that. */
const MOST = 2

/** How many times a bound of time may be taken here, 1 to 2, by what a fixed piece of work takes in this page. */
export async function slowness(page) {
  const took = await page.evaluate(() => {
    const work = () => {
      const began = performance.now()
      const numbers = Array.from({ length: 30_000 }, (_, at) => (at * 7_919) % 104_729)
      numbers.sort((one, other) => one - other)
      JSON.parse(JSON.stringify(numbers.map((number) => ({ key: `k${number}`, number }))))
      return performance.now() - began
    }
    return Math.min(...Array.from({ length: 12 }, work))
  })
  return Math.min(MOST, Math.max(1, took / USUAL_MS))
}
