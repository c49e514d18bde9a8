// Pages come as text: build.sh tells esbuild so.
declare module "*.html" {
  const text: string;
  export default text;
}
