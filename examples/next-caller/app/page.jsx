export default function Page() {
  return <p>POST /api/notes adds a note at the kiosk.</p>;
}
