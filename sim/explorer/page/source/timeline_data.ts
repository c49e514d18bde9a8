// A simulated step as the server sends it (sim/explorer/timeline_bytes.hpp): columns.

export interface RankOfTimeline {
  rank: number; stage: number; data: number; context: number; tensor: number; ranks: number;
}
export interface Track { of: number; name: string; first: number; count: number }
interface Header {
  step_ns: number; slices: number; arrows: number; ranks: RankOfTimeline[]; tracks: Track[];
  names: string[]; categories: string[]; inside: boolean; simulated: number;
}

export class Timeline {
  /** How many slices enclose it. */
  readonly depth: Uint8Array;
  /** Of each track: how deep it goes. */
  readonly depths: number[] = [];

  private constructor(
    readonly header: Header, readonly start: Float64Array, readonly finish: Float64Array,
    readonly name: Uint32Array, readonly bytes: Float32Array, readonly exposed: Float32Array,
    readonly category: Uint8Array, readonly from: Uint32Array, readonly to: Uint32Array) {
    this.depth = new Uint8Array(header.slices);
    for (const track of header.tracks) {
      const open: number[] = [];
      let most = 0;
      for (let i = track.first; i < track.first + track.count; ++i) {
        while (open.length > 0 && open[open.length - 1] <= start[i]) open.pop();
        this.depth[i] = Math.min(open.length, 3);
        most = Math.max(most, this.depth[i]);
        open.push(finish[i]);
      }
      this.depths.push(most);
    }
  }

  static read(bytes: Uint8Array): Timeline {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (new TextDecoder().decode(bytes.subarray(0, 4)) !== "ORT1")
      throw new Error("the reply holds no timeline");
    const length = view.getUint32(4, true);
    const header: Header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    let at = 8 + length;
    const column = <T>(make: (b: ArrayBuffer, at: number, n: number) => T, n: number,
                       size: number): T => {
      at = Math.ceil(at / 8) * 8;
      const made = make(bytes.buffer as ArrayBuffer, bytes.byteOffset + at, n);
      at += n * size;
      return made;
    };
    const n = header.slices;
    const f64 = (b: ArrayBuffer, o: number, k: number) => new Float64Array(b, o, k);
    const f32 = (b: ArrayBuffer, o: number, k: number) => new Float32Array(b, o, k);
    const u32 = (b: ArrayBuffer, o: number, k: number) => new Uint32Array(b, o, k);
    const u8 = (b: ArrayBuffer, o: number, k: number) => new Uint8Array(b, o, k);
    return new Timeline(
      header, column(f64, n, 8), column(f64, n, 8), column(u32, n, 4), column(f32, n, 4),
      column(f32, n, 4), column(u8, n, 1), column(u32, header.arrows, 4),
      column(u32, header.arrows, 4));
  }

  trackOf(slice: number): number {
    const tracks = this.header.tracks;
    let low = 0, high = tracks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (tracks[middle].first <= slice) low = middle; else high = middle - 1;
    }
    return low;
  }

  rankOf(slice: number): RankOfTimeline {
    return this.header.ranks[this.header.tracks[this.trackOf(slice)].of];
  }

  /** First slice of a track that starts at `time` or later. */
  lowerBound(track: Track, time: number): number {
    let low = track.first, high = track.first + track.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  /** The innermost slice of a track at a time and depth; -1: none. */
  at(track: Track, time: number, depth: number): number {
    for (let i = this.lowerBound(track, time + 1e-3) - 1; i >= track.first; --i) {
      if (this.depth[i] === depth && this.finish[i] >= time) return i;
      if (this.depth[i] <= depth) return -1;
    }
    return -1;
  }

  /** The transfers that a slice waits for, or the slices that wait for it. */
  feeds(slice: number): number[] {
    const found: number[] = [];
    for (let i = 0; i < this.to.length; ++i) if (this.to[i] === slice) found.push(this.from[i]);
    return found;
  }
  fedBy(slice: number): number[] {
    const found: number[] = [];
    for (let i = 0; i < this.from.length; ++i) if (this.from[i] === slice) found.push(this.to[i]);
    return found;
  }
}
